//go:build !unix

package place

// NonBlocking are the flags of Open with which nothing waits.
const NonBlocking = 0
