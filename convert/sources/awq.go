package sources

// AutoAWQ stores a linear layer [out, in] as X.qweight I32 [in, out*bits/32], X.qzeros I32 [groups, out*bits/32] and X.scales
// [groups, out]. A word has codes of eight neighbouring rows of the weight, in the order 0, 2, 4, 6, 1, 3, 5, 7 from the lowest
// bits on.
// https://github.com/casper-hansen/AutoAWQ/blob/v0.2.9/awq/utils/packing_utils.py

// awqLane is the place of each of the eight rows in its word.
var awqLane = []int{0, 4, 1, 5, 2, 6, 3, 7}

func findAWQ(c *Checkpoint) (Found, error) {
	return findTurned(c, "awq", "AWQ", func(l *turnedLayer) error {
		if v := l.config.Version; v != "" && v != "gemm" && v != "GEMM" {
			return c.wrongConfig(l.config.key+".version", "the layout %q is made for other kernels; take the checkpoint in the layout gemm, or convert it with AutoAWQ", v)
		}
		if l.bits != 4 {
			return wrong(l.weight, "it is AWQ of %d bits, and only 4 bits are published; %s", l.bits, takePlain)
		}
		l.lane = awqLane
		return nil
	})
}
