package prefix

import (
	"cmp"
	"slices"
	"time"
)

// diskRest is how long an owner whose files nobody uses keeps its share of the folder.
const diskRest = 24 * time.Hour

// trim evicts files to keep the budget: those of owners that have more than an equal share of it, in the order of their
// last use. Among files used at the same time, those with the farthest end go first.
func (d *Disk) trim() {
	if d.opts.Budget <= 0 || d.index.bytes <= d.opts.Budget {
		return
	}
	var all []*stored
	has := map[string]int64{}
	active, since := map[string]bool{}, time.Now().Add(-diskRest)
	for _, f := range d.index.files {
		all = append(all, f)
		has[f.owner] += f.size
		if f.owner != "" && f.used.After(since) {
			active[f.owner] = true
		}
	}
	slices.SortFunc(all, func(a, b *stored) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(b.end, a.end)) })
	share := d.opts.Budget / max(int64(len(active)), 1)
	for _, f := range all {
		if d.index.bytes <= d.opts.Budget {
			return
		}
		if !active[f.owner] || has[f.owner] > share {
			has[f.owner] -= f.size
			d.forget(f.fileName)
		}
	}
}
