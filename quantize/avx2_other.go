//go:build !amd64

package quantize

const hasAVX2 = false

func (t Type) encodeAffineAVX2(Blocks, []byte, DType) error { return nil }

func loadBF16AVX2(*uint32, *byte, int) (signed, unsigned, nearest uint32) { return }

func loadF16AVX2(*uint32, *byte, int) (signed, unsigned, nearest uint32) { return }

func loadF32AVX2(*uint32, *byte, int) (signed, unsigned, nearest uint32) { return }
