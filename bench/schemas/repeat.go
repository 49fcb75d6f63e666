package main

import (
	"context"
	"time"

	"github.com/ingotml/ingot/grammar"
)

// repeats is how often a slow mask is measured again.
const repeats = 3

// least returns the least time of the mask behind ids, which took some time at first: an interrupt or the collector's
// work within one measurement is not the mask's. Each time, the grammar and its cache are new.
func (t *tally) least(c schemaCase, ids []int32, took time.Duration) time.Duration {
	mask := make([]uint32, grammar.Words(t.vocabulary.Size()))
	for range repeats {
		g, err := grammar.CompileSchemaWith(context.Background(), t.source(c), t.schemaOptions)
		if err != nil {
			return took
		}
		m, err := g.Matcher(t.vocabulary, -1)
		if err != nil {
			return took
		}
		for _, id := range ids {
			m.Mask(mask, -1)
			if m.Accept(id) != nil {
				return took
			}
		}
		began := now()
		m.Mask(mask, -1)
		took = min(took, now()-began)
	}
	return took
}
