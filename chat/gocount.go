package chat

import (
	"fmt"
	"slices"
	"strings"
	"text/template/parse"
)

// checkEvery is the number of nodes of a list between two checks of the context.
const checkEvery = 64

// count inserts nodes that count steps while the tree runs. At the start of a template and of each loop body, a node
// counts all nodes there; nodes in between check the context.
func count(list *parse.ListNode) error {
	countReads(list)
	return countList(list)
}

func countList(list *parse.ListNode) error {
	weight, err := countLoops(list)
	if err != nil {
		return err
	}
	return prepend(list, weight)
}

// countLoops inserts counters into the loops below n and returns the number of nodes outside of these loops.
func countLoops(n parse.Node) (weight int, err error) {
	branch := func(b *parse.BranchNode, loop bool) error {
		weight = 1 + nodes(b.Pipe)
		if loop {
			err = countList(b.List)
		} else {
			var w int
			w, err = countLoops(b.List)
			weight += w
		}
		if err == nil && b.ElseList != nil {
			var w int
			w, err = countLoops(b.ElseList)
			weight += w
		}
		return err
	}
	switch n := n.(type) {
	case *parse.ListNode:
		var kept []parse.Node
		for i, c := range n.Nodes {
			w, err := countLoops(c)
			if err != nil {
				return 0, err
			}
			weight += w
			if i%checkEvery == checkEvery-1 {
				s, err := step(1)
				if err != nil {
					return 0, err
				}
				kept = append(kept, s)
			}
			kept = append(kept, c)
		}
		n.Nodes = kept
		return weight, nil
	case *parse.IfNode:
		err = branch(&n.BranchNode, false)
	case *parse.WithNode:
		err = branch(&n.BranchNode, false)
	case *parse.RangeNode:
		err = branch(&n.BranchNode, true)
	default:
		weight = nodes(n)
	}
	return weight, err
}

func prepend(list *parse.ListNode, weight int) error {
	s, err := step(weight)
	if err == nil {
		list.Nodes = append([]parse.Node{s}, list.Nodes...)
	}
	return err
}

// step returns a node that counts steps.
func step(weight int) (parse.Node, error) {
	text := fmt.Sprintf("{{%s %d}}", stepFunc, max(weight, 1))
	trees, err := parse.Parse("", text, "", "", map[string]any{stepFunc: fmt.Sprint})
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrTemplate, err)
	}
	return trees[""].Root.Nodes[0], nil
}

// reading are the functions whose time depends on the length of their arguments, and which text/template defines.
// passing are those that return one of their arguments or a part of it.
var (
	reading = []string{"eq", "ne", "lt", "le", "gt", "ge", "index"}
	passing = []string{"and", "or", "index", "slice"}
)

// countReads lets readFunc and showFunc count the values that functions compare and look up below n, the maps that
// ranges go through, whose keys are sorted first, and what is printed.
func countReads(n parse.Node) {
	walk(n, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.RangeNode:
			n.Pipe.Cmds = []*parse.CommandNode{call(readFunc, pipe(n.Pipe.Cmds...))}
		case *parse.ActionNode:
			last := n.Pipe.Cmds[len(n.Pipe.Cmds)-1]
			f, ok := last.Args[0].(*parse.IdentifierNode)
			if len(n.Pipe.Decl) == 0 && (!ok || slices.Contains(passing, f.Ident)) {
				n.Pipe.Cmds = []*parse.CommandNode{call(showFunc, pipe(n.Pipe.Cmds...))}
			}
		case *parse.PipeNode:
			var cmds []*parse.CommandNode
			for i, c := range n.Cmds {
				if f, ok := c.Args[0].(*parse.IdentifierNode); ok && slices.Contains(reading, f.Ident) {
					for j, arg := range c.Args[1:] {
						if isShort(arg) {
							continue
						}
						c.Args[1+j] = pipe(call(readFunc, arg))
					}
					if i > 0 { // the value before it is its last argument
						cmds = append(cmds, call(readFunc))
					}
				}
				cmds = append(cmds, c)
			}
			n.Cmds = cmds
		}
	})
}

// isShort reports whether a node is a constant that takes no time to read.
func isShort(n parse.Node) bool {
	const short = 256
	switch n := n.(type) {
	case *parse.NumberNode, *parse.BoolNode, *parse.NilNode:
		return true
	case *parse.StringNode:
		return len(n.Text) < short
	}
	return false
}

// uncounted removes the calls that count from the text of an error, which quotes a template.
var uncounted = strings.NewReplacer(" | "+readFunc, "", " | "+showFunc, "", readFunc+" ", "")

func pipe(cmds ...*parse.CommandNode) *parse.PipeNode {
	return &parse.PipeNode{NodeType: parse.NodePipe, Cmds: cmds}
}

// call returns a call of a function.
func call(name string, args ...parse.Node) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand,
		Args: append([]parse.Node{parse.NewIdentifier(name)}, args...)}
}
