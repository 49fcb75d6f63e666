package chat

import (
	"context"
	"fmt"
	"reflect"
	"text/template"
	"text/template/parse"

	"github.com/ingotml/ingot/internal/limits"
)

// goTree describes one template of a set.
type goTree struct {
	root   *parse.ListNode
	calls  []goCallSite
	levels int // nesting of its blocks
	state  visitState
	total  int // nesting, including the templates that it calls
}

// goCallSite is a {{template}} action.
type goCallSite struct {
	name   string
	levels int // blocks around it
}

type visitState int

const (
	unvisited visitState = iota
	visiting
	visited
)

// goTrees are the templates of a set by name.
type goTrees map[string]*goTree

// analyze collects the trees of a set. It fails if a template calls itself, if calls nest too deeply, or with the
// context's error. Time is linear in the length of the text.
func analyze(ctx context.Context, t *template.Template) (goTrees, error) {
	trees := goTrees{}
	for _, sub := range t.Templates() {
		if sub.Tree == nil || sub.Root == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		tree := &goTree{root: sub.Root}
		tree.collect(sub.Root, 1)
		trees[sub.Name()] = tree
	}
	for name := range trees {
		if err := trees.measure(name); err != nil {
			return nil, err
		}
	}
	return trees, nil
}

// collect records the calls below n, which is at this nesting level.
func (t *goTree) collect(n parse.Node, level int) {
	t.levels = max(t.levels, level)
	branch := func(b *parse.BranchNode) {
		t.collect(b.List, level+1)
		if b.ElseList != nil {
			t.collect(b.ElseList, level+1)
		}
	}
	switch n := n.(type) {
	case *parse.ListNode:
		for _, c := range n.Nodes {
			t.collect(c, level)
		}
	case *parse.TemplateNode:
		t.calls = append(t.calls, goCallSite{n.Name, level})
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	}
}

// measure sets the total nesting of a template and of all templates that it calls. It visits each template once. Its
// recursion depth is at most the number of definitions, which scan bounds.
func (trees goTrees) measure(name string) error {
	t := trees[name]
	if t == nil || t.state == visited {
		return nil // calling an undefined template fails when rendering
	}
	if t.state == visiting {
		return fmt.Errorf("%w: template %q calls itself", ErrTemplate, name)
	}
	t.state, t.total = visiting, t.levels
	for _, c := range t.calls {
		if err := trees.measure(c.name); err != nil {
			return err
		}
		if callee := trees[c.name]; callee != nil {
			t.total = max(t.total, c.levels+callee.total)
		}
	}
	if t.total > limits.TemplateDepth {
		return limitError("templates that call each other nest more than %d levels", limits.TemplateDepth)
	}
	t.state = visited
	return nil
}

// nodes returns the number of nodes below n, including n. n is not a block.
func nodes(n parse.Node) (count int) {
	walk(n, func(parse.Node) { count++ })
	return count
}

// readFields adds the fields that the nodes below n read.
func readFields(n parse.Node, fields map[string]bool) {
	note := func(names []string) {
		for _, f := range names {
			fields[f] = true
		}
	}
	walk(n, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.FieldNode:
			note(n.Ident)
		case *parse.VariableNode:
			note(n.Ident[1:])
		case *parse.ChainNode:
			note(n.Field)
		}
	})
}

// walk calls fn for n and every node below it.
func walk(n parse.Node, fn func(parse.Node)) {
	if n == nil || reflect.ValueOf(n).IsNil() {
		return
	}
	fn(n)
	branch := func(b *parse.BranchNode) {
		walk(b.Pipe, fn)
		walk(b.List, fn)
		walk(b.ElseList, fn)
	}
	switch n := n.(type) {
	case *parse.ListNode:
		for _, c := range n.Nodes {
			walk(c, fn)
		}
	case *parse.ActionNode:
		walk(n.Pipe, fn)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			walk(c, fn)
		}
	case *parse.CommandNode:
		for _, a := range n.Args {
			walk(a, fn)
		}
	case *parse.ChainNode:
		walk(n.Node, fn)
	case *parse.TemplateNode:
		walk(n.Pipe, fn)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	}
}

// cutResponse drops the nodes after the first use of .Response, where the model's own text goes. It reports whether
// .Response was found.
func cutResponse(list *parse.ListNode, cut bool) bool {
	if list == nil {
		return cut
	}
	var kept []parse.Node
	for _, n := range list.Nodes {
		if cut {
			break
		}
		switch n := n.(type) {
		case *parse.IfNode:
			cut = cutBranch(&n.BranchNode)
		case *parse.WithNode:
			cut = cutBranch(&n.BranchNode)
		case *parse.RangeNode:
			cut = cutBranch(&n.BranchNode)
		default:
			fields := map[string]bool{}
			readFields(n, fields)
			cut = fields["Response"]
		}
		kept = append(kept, n)
	}
	list.Nodes = kept
	return cut
}

func cutBranch(b *parse.BranchNode) bool {
	fields := map[string]bool{}
	readFields(b.Pipe, fields)
	cut := cutResponse(b.List, fields["Response"])
	return cutResponse(b.ElseList, cut) || cut
}
