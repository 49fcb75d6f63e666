//go:build !unix

package place

const nonBlocking = 0
