package recursion

// Order lists the nodes that the roots lead to, each after those that it leads to itself, but for cycles. There are n
// nodes; next returns the k-th node that i leads to.
func Order(n int, next func(i int32, k int) (to int32, ok bool), roots ...int32) []int32 {
	type visit struct {
		node int32
		done int // nodes that it leads to and that were visited
	}
	seen := make([]bool, n)
	order := make([]int32, 0, n)
	var stack []visit
	for _, root := range roots {
		if seen[root] {
			continue
		}
		seen[root] = true
		stack = append(stack, visit{node: root})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			to, ok := next(top.node, top.done)
			top.done++
			switch {
			case !ok:
				order = append(order, top.node)
				stack = stack[:len(stack)-1]
			case !seen[to]:
				seen[to] = true
				stack = append(stack, visit{node: to})
			}
		}
	}
	return order
}
