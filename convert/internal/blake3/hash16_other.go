//go:build !amd64

package blake3

const wide = false

func hash16(*[lanesWide]value, *byte, *lanes) {}
