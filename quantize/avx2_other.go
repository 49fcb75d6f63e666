//go:build !amd64

package quantize

const hasAVX2 = false

func codesAVX2(*uint64, *uint32, int, float32, float32, int) {}

func loadBF16AVX2(*uint32, *byte, int) (signed, unsigned, nearest uint32) { return }

func loadF16AVX2(*uint32, *byte, int) (signed, unsigned, nearest uint32) { return }

func loadF32AVX2(*uint32, *byte, int) (signed, unsigned, nearest uint32) { return }
