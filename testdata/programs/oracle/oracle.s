// Empty: lets the package declare functions that live elsewhere.
