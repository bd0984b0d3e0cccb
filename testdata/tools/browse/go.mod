module browse

go 1.21
