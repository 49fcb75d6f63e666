package packed

// AutoAWQ stores a linear layer [out, in] as X.qweight I32 [in, out*bits/32], X.qzeros I32 [groups, out*bits/32] and
// X.scales [groups, out]. A word holds the codes of eight adjacent rows of the weight, in the order 0, 2, 4, 6, 1, 3,
// 5, 7 from the lowest bits.
// https://github.com/casper-hansen/AutoAWQ/blob/v0.2.9/awq/utils/packing_utils.py

// awqLane is the position of each of the eight rows in a word.
var awqLane = []int{0, 4, 1, 5, 2, 6, 3, 7}

func findAWQ(c *Checkpoint) (Found, error) {
	return findTransposed(c, "awq", "AWQ", func(l *transposedLayer) error {
		if v := l.config.Version; v != "" && v != "gemm" && v != "GEMM" {
			return c.wrongConfig(l.config.key+".version",
				"the layout %q is for other kernels; use the checkpoint in the layout gemm, or convert it with AutoAWQ", v)
		}
		if l.bits != 4 {
			return wrong(l.weight, "AWQ with %d bits is not supported, only 4 bits are published; %s", l.bits, usePlain)
		}
		l.lane = awqLane
		return nil
	})
}
