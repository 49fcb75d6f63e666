package jinja

import (
	"context"

	"github.com/ingotml/ingot/limits"
)

// budget bounds the work of compiling one template: what is done again for blocks within blocks, and for the names of
// branches. Once it is spent or the context has ended, what asks it does nothing, and the compiler returns err.
type budget struct {
	ctx  context.Context
	left int
	seen int // of left when the context was last asked
	err  error
}

// take reports whether there is budget for so much work.
func (b *budget) take(n int) bool {
	if b.err != nil {
		return false
	}
	b.left -= n
	if b.seen-b.left >= 1000 {
		b.seen = b.left
		b.err = b.ctx.Err()
	}
	if b.left < 0 && b.err == nil {
		b.err = limitError("it takes more than %d steps to compile", limits.TemplateCompile)
	}
	return b.err == nil
}
