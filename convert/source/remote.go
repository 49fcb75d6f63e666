package source

import (
	"cmp"
	"context"
	"slices"

	"github.com/ingotml/ingot/safetensors"
)

// Remote is a folder that is not on this machine, such as a repository of a hub, at one commit.
type Remote interface {
	safetensors.Folder
	// Commit returns the repository as users name it, and the revision that was asked for, with the commit that it is.
	Commit() (repository, revision, commit string)
	// ETag identifies a file's contents. It is "" for a file that the folder lacks.
	ETag(name string) string
	// Compared reports whether all bytes of a file were compared with its etag, which is a hash of them.
	Compared(name string) bool
	// Expect announces ranges of files that will be read, roughly in this order, so that they are requested ahead.
	// Each is read once; whole says that nothing more will be read of these files.
	Expect(ranges func(yield func(file string, begin, end int64) bool), whole bool)
	// Verify waits until all expected bytes of files have been compared with the published checksums, as far as they can
	// be, and returns an error if they differ.
	Verify(ctx context.Context) error
	// Differs reports whether bytes that were read turned out to be others than the published ones.
	Differs() bool
}

// remote returns the folder of a tensor that is not on this machine.
func (t Tensor) remote() (Remote, shard, bool) {
	s, ok := t.place.(shard)
	if !ok || s.folder == nil {
		return nil, shard{}, false
	}
	r, ok := s.folder.(Remote)
	return r, s, ok
}

// Remote reports whether the tensor's bytes come over a network, so that they should be read only once.
func (t Tensor) Remote() bool {
	for _, p := range t.Parts() {
		if _, _, ok := p.remote(); ok {
			return true
		}
	}
	return false
}

// ByPlace orders tensors of remote folders by file and offset, so that files are read from begin to end.
func ByPlace(a, b Tensor) int {
	first, second := a.Parts()[0], b.Parts()[0]
	_, x, _ := first.remote()
	_, y, _ := second.remote()
	return cmp.Or(cmp.Compare(first.Path, second.Path), cmp.Compare(x.tensor.Begin, y.tensor.Begin))
}

// Expect announces to remote folders that tensors will be read once each, in this order. whole says that nothing else
// will be read of their files.
func Expect(order []Tensor, whole bool) {
	lists := map[Remote][]shard{}
	var folders []Remote
	for _, t := range order {
		for _, p := range t.Parts() {
			r, s, ok := p.remote()
			if !ok {
				continue
			}
			if lists[r] == nil {
				folders = append(folders, r)
			}
			lists[r] = append(lists[r], s)
		}
	}
	for _, r := range folders {
		r.Expect(func(yield func(string, int64, int64) bool) {
			for _, s := range lists[r] {
				if begin, end := s.extent(); !yield(s.name, begin, end) {
					return
				}
			}
		}, whole)
	}
}

// expectBoth announces that two tensors of the same size are read side by side, a piece at a time.
func expectBoth(a, b Tensor, piece int64) {
	ra, x, okA := a.remote()
	rb, y, okB := b.remote()
	if !okA || !okB || ra != rb {
		Expect([]Tensor{a, b}, false)
		return
	}
	ra.Expect(func(yield func(string, int64, int64) bool) {
		for at := int64(0); at < a.Size(); at += piece {
			for _, s := range []shard{x, y} {
				begin, end := s.extent()
				if !yield(s.name, begin+at, min(begin+at+piece, end)) {
					return
				}
			}
		}
	}, false)
}

// extent returns the tensor's range of bytes in its file.
func (s shard) extent() (begin, end int64) {
	data := s.tensor.File.Header().DataOffset
	return data + s.tensor.Begin, data + s.tensor.End
}

// Verify waits for the checks of the bytes that remote folders of the tensors delivered.
func Verify(ctx context.Context, list []Tensor) error {
	for _, r := range remotes(list) {
		if err := r.Verify(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Differs reports whether a remote folder of the tensors delivered other bytes than the published ones.
func Differs(list []Tensor) bool { return slices.ContainsFunc(remotes(list), Remote.Differs) }

// remotes lists the remote folders of tensors, each once.
func remotes(list []Tensor) []Remote {
	var out []Remote
	for _, t := range list {
		for _, p := range t.Parts() {
			if r, _, ok := p.remote(); ok && !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}
