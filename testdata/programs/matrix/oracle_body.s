//go:build !cgo
// +build !cgo

// Empty: lets the package declare functions that live elsewhere.
