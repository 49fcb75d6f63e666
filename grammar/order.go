package grammar

import (
	"context"
	"slices"
)

// findOrder lists the nodes that the start leads to, each after those that it continues at, but for loops: so that what
// depends on them settles in few rounds.
func (p *program) findOrder() {
	type visit struct {
		node int32
		done int // successors that were visited
	}
	seen := make([]bool, len(p.nodes))
	p.order = make([]int32, 0, len(p.nodes))
	stack := []visit{{node: p.start}}
	seen[p.start] = true
	if p.skips > 0 && !seen[p.skips] {
		stack = append(stack, visit{node: p.skips})
		seen[p.skips] = true
	}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		n := &p.nodes[top.node]
		next, more := int32(0), true
		switch {
		case n.op == nodeAlt && top.done < int(n.min):
			next = p.alts[int(n.arg)+top.done]
		case n.op == nodeAlt || n.op == nodeEnd:
			more = false
		case top.done == 0:
			next = n.next
		case top.done == 1 && (n.op == nodeCall || n.op == nodeRepeat || n.op == nodeSkip):
			next = n.arg
		default:
			more = false
		}
		if !more {
			p.order = append(p.order, top.node)
			stack = stack[:len(stack)-1]
			continue
		}
		top.done++
		if !seen[next] {
			seen[next] = true
			stack = append(stack, visit{node: next})
		}
	}
}

// findLive marks the nodes from which a finite string leads to the end.
func (p *program) findLive(ctx context.Context) error {
	p.live = make([]bool, len(p.nodes))
	for changed := true; changed; {
		if err := ctx.Err(); err != nil {
			return err
		}
		changed = false
		for _, i := range p.order {
			if p.live[i] {
				continue
			}
			n := &p.nodes[i]
			live := false
			switch n.op {
			case nodeEnd:
				live = true
			case nodeByte, nodeToken, nodeLazy, nodeSkip:
				live = p.live[n.next]
			case nodeAlt:
				live = slices.ContainsFunc(p.altsOf(n), func(a int32) bool { return p.live[a] })
			case nodeCall:
				live = p.live[n.arg] && p.live[n.next]
			case nodeRepeat:
				live = p.live[n.next] && (n.min == 0 || p.live[n.arg])
			}
			if live {
				p.live[i], changed = true, true
			}
		}
	}
	return nil
}
