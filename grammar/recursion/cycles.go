package recursion

import "slices"

// Cycles calls visit with each of n nodes, after the nodes that it leads to except those of its own cycle: whether it
// is on a cycle, and where it leads (Tarjan's algorithm, without recursion). All nodes of a cycle are cyclic.
func Cycles(n int, next func(int32) []int32, visit func(i int32, cyclic bool, to []int32)) {
	index, low := make([]int32, n), make([]int32, n) // from 1
	open := make([]bool, n)
	var order []int32
	count := int32(0)
	type call struct {
		node int32
		to   []int32
		at   int
	}
	for root := range int32(n) {
		if index[root] != 0 {
			continue
		}
		var calls []call
		enter := func(i int32) {
			count++
			index[i], low[i], open[i] = count, count, true
			order = append(order, i)
			calls = append(calls, call{node: i, to: next(i)})
		}
		for enter(root); len(calls) > 0; {
			c := &calls[len(calls)-1]
			if c.at < len(c.to) {
				to := c.to[c.at]
				c.at++
				if index[to] == 0 {
					enter(to)
				} else if open[to] {
					low[c.node] = min(low[c.node], index[to])
				}
				continue
			}
			i, to := c.node, c.to
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				up := calls[len(calls)-1].node
				low[up] = min(low[up], low[i])
			}
			if low[i] != index[i] {
				continue
			}
			begin := len(order) - 1
			for order[begin] != i {
				begin--
			}
			cyclic := len(order)-begin > 1 || slices.Contains(to, i)
			for _, k := range order[begin:] {
				open[k] = false
				visit(k, cyclic, next(k))
			}
			order = order[:begin]
		}
	}
}
