//go:build !unix

package identity

// fileID returns "": the standard library gives no file ids on these systems.
func fileID(string) string { return "" }
