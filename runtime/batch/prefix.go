package batch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/ranks"
	"github.com/opencontainers/go-digest"
)

// prefixes is the prefix cache of a model. A nil one keeps nothing.
type prefixes struct {
	tree           *prefix.Tree // used on the engine's thread; nil: off
	disk           *prefix.Disk // its second tier, or nil
	kinds          []cache.Kind
	parked         *parked // nil: none
	ranks          *ranks.Leader
	closed         bool
	needsSnapshots bool // some layers can only be restored to a snapshot
}

// newPrefixes returns the prefix cache of a model with the given layers; it keeps nothing if its size is 0.
func newPrefixes(kinds []cache.Kind, size int64) *prefixes {
	p := &prefixes{
		kinds:          kinds,
		needsSnapshots: slices.ContainsFunc(kinds, func(k cache.Kind) bool { return !k.Whole() && k != cache.None }),
	}
	if size > 0 {
		p.tree = prefix.New(kinds, size)
	}
	return p
}

// openDisk opens the second tier in the options' folder, if there is one. Its entries are valid only for the same
// weights, engine and settings.
func (p *prefixes) openDisk(ctx context.Context, m *load.Model, st *store.Store, image digest.Digest,
	o runtime.Options) error {
	if p.tree == nil || o.PrefixDir == "" || p.ranks != nil { // a file would have the state of one rank
		return nil
	}
	secret, err := st.Secret(ctx)
	if err != nil { // the folder is of no use, but the model is
		if o.Log != nil {
			o.Log("the prefix cache on disk is off: %v", err)
		}
		return nil
	}
	info := m.Thread.Info()
	var cpu mlx.CPUReport
	err = m.Thread.Do(ctx, func() error { cpu = m.Thread.CPU(); return nil })
	if err != nil {
		return err
	}
	p.disk, err = prefix.OpenDisk(prefix.DiskOptions{
		Dir: o.PrefixDir, Budget: o.PrefixDisk, Secret: secret, Log: o.Log,
		Model: fmt.Sprintf("%s MLX %s %s %s fast %v kv %s", image, info.Version, info.Flavour, m.Weights.DType, cpu.Fast,
			o.KV),
	})
	if err != nil {
		return err
	}
	return m.Thread.Do(ctx, func() error { p.tree.SetDisk(m.Thread, p.disk); return nil })
}

// close frees the cached state. It runs on the engine's thread.
func (p *prefixes) close() {
	if p != nil && p.tree != nil {
		p.unpark()
		p.closed = true
		p.tree.Close()
	}
}

func (p *prefixes) closeDisk() {
	if p != nil && p.disk != nil {
		p.disk.Close()
	}
}

// written returns a channel that is closed when the second tier has written all that it was given. It runs on the
// engine's thread.
func (p *prefixes) written() <-chan struct{} {
	if p == nil || p.disk == nil || p.closed {
		done := make(chan struct{})
		close(done)
		return done
	}
	return p.disk.Written()
}

// cachedState is a request's part in the prefix cache.
type cachedState struct {
	owner     string
	session   *prefix.Session // nil before admission and without a cache
	keys      []prefix.Key    // of the request's tokens
	snapshots []int           // prompt positions at which to take a snapshot, ascending, without passed ones
	pins      []runtime.Pin
}

// add appends the key of a token.
func (c *cachedState) add(token int32) { c.keys = append(c.keys, prefix.Tokens([]int32{token})...) }

// store hands the request's state to the prefix cache. It runs on the engine's thread.
func (c *cachedState) store() {
	if c.session != nil {
		c.session.Store(c.keys)
		c.pin(c.session)
		c.session.Leave()
		c.session = nil
	}
}

// pin pins what the request asked for, as far as a session has stored it.
func (c *cachedState) pin(s *prefix.Session) {
	for _, p := range c.pins {
		s.Pin(p.Tokens, time.Now().Add(p.TTL))
	}
}

// leave ends the session without storing the state. It runs on the engine's thread.
func (c *cachedState) leave() {
	if c.session != nil {
		c.session.Leave()
		c.session = nil
	}
}

// takeSnapshot stores the sequence's state if its position is that of the next snapshot.
func (c *cachedState) takeSnapshot(position int) {
	if len(c.snapshots) == 0 || position != c.snapshots[0] {
		return
	}
	c.session.Snapshot(c.snapshots[0] != c.session.Branch())
	c.snapshots = c.snapshots[1:]
}

// Positions of the snapshots that prefill takes: every snapshotInterval tokens, and snapshotTail tokens before the
// prompt's end. The last tokens of a chat template, such as an opened thinking block, often differ when a prompt is
// retried, so a snapshot at the very end would not be reused.
const (
	snapshotInterval = 8192
	snapshotTail     = 4
)

// planSnapshots sets the positions at which prefill of a prompt of n tokens pauses to take a snapshot, of a sequence
// that is restored up to from. They include the ends of pins, and the position where the prompt diverges from cached
// ones. Only models with layers whose state cannot be truncated to an earlier position need them.
func (c *cachedState) planSnapshots(n, from int) {
	var points []int
	add := func(p int) {
		if p > from && p < n {
			points = append(points, p)
		}
	}
	add(c.session.Branch())
	for p := snapshotInterval; p < n; p += snapshotInterval {
		add(p)
	}
	add(n - snapshotTail)
	for _, p := range c.pins {
		add(p.Tokens)
	}
	slices.Sort(points)
	c.snapshots = slices.Compact(points)
}

// startSession takes over the parked state, or looks the request's tokens up in the prefix cache and restores their
// longest cached prefix. It runs on the engine's thread.
func (g *generation) startSession() {
	if g.prefixes == nil || g.prefixes.tree == nil {
		return
	}
	keys := g.cached.keys[:len(g.tokens)]
	switch usable, scores := g.unscored(); {
	case scores:
		g.prefixes.unpark()
		g.cached.session = g.prefixes.tree.BeginWithin(g.cached.owner, g.seq, keys, usable)
	case !g.prefixes.takeOver(g):
		g.cached.session = g.prefixes.tree.Begin(g.cached.owner, g.seq, keys)
	}
	if g.stats.Tokens == 0 {
		g.stats.CachedTokens = min(g.cached.session.Cached(), g.stats.PromptTokens)
	}
	g.cached.snapshots = nil
	if g.prefixes.needsSnapshots {
		g.cached.planSnapshots(len(g.request.Prompt), g.seq.Offset())
	}
}
