package safetensors

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits/filekind"
)

// openIndexed opens the shards in the index and looks up each tensor in its shard. Files are the truth, and the index
// describes them: a tensor is taken from where it is, and a complete set of other files stands for files that the index
// lists and that do not exist.
func (c *Checkpoint) openIndexed(folder Folder, entries []fs.DirEntry, weights []placed) error {
	names := shardsOf(weights)
	there := map[string]bool{}
	for _, e := range entries {
		// An index that was copied from a checkpoint of pickles names them.
		there[e.Name()] = hasExtension(e.Name()) || slices.Contains(names, e.Name()) &&
			kindIn(folder, e.Name()) == filekind.Safetensors
	}
	for _, name := range WeightFiles(folder, entries) {
		if !slices.Contains(names, name) {
			c.unlisted = append(c.unlisted, name)
		}
	}
	if i := slices.IndexFunc(names, func(name string) bool { return !there[name] }); i >= 0 {
		err := missing(folder, names[i])
		some := slices.ContainsFunc(names, func(name string) bool { return there[name] })
		return c.openOther(folder, entries, weights, some, err)
	}
	if err := c.openFiles(folder, names); err != nil {
		return err
	}
	shards := make(map[string]*File)
	for i, name := range names {
		shards[name] = c.files[i]
	}
	return c.take(folder, weights, shards)
}

// shardsOf returns the sorted names of the shards that an index lists.
func shardsOf(weights []placed) []string {
	names := map[string]bool{}
	for _, w := range weights {
		names[w.shard] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// missing returns the error of a listed file that does not exist, or that is of another kind.
func missing(folder Folder, name string) error {
	problem := "it does not exist; download it again"
	if found, err := KindOf(folder, name); err == nil {
		problem = fmt.Sprintf("it is %v; use the model's safetensors checkpoint", found)
	}
	return fmt.Errorf("%s: %w: %s lists this file, but %s", folder.Path(name), ErrIncomplete, indexName, problem)
}

// take takes the tensors that the index lists from the open files, wherever they are.
func (c *Checkpoint) take(folder Folder, weights []placed, shards map[string]*File) error {
	c.tensors = make([]Source, 0, len(weights))
	var moved []string
	var further *Checkpoint
	for _, w := range weights {
		name := w.tensor
		f := shards[w.shard]
		t, ok := f.Lookup(name)
		if !ok {
			if further == nil {
				further = c.Further(folder)
				defer further.Close()
			}
			if f, t, ok = c.find(name, further); !ok {
				return fmt.Errorf("%s: tensor %s: %w: %s says that the tensor is in this file, but %s%s",
					folder.Path(w.shard), quote(name), ErrIncomplete, indexName, c.location(name), c.unlistedHint())
			}
			moved = append(moved, name)
		}
		c.tensors = append(c.tensors, Source{t, f})
	}
	if len(moved) > 0 {
		c.notes = append(c.notes, fmt.Sprintf("%s is stale: %s not in the file that it names, such as %s; "+
			"read from where they are", indexName, tensors(len(moved)), quote(moved[0])))
	}
	for _, f := range c.files {
		for _, t := range f.Header().Tensors {
			if s, ok := c.Lookup(t.Name); !ok || s.File != f {
				c.unindexed = append(c.unindexed, Source{t, f})
			}
		}
	}
	slices.SortStableFunc(c.unindexed, bySourceName)
	return nil
}

// find finds a tensor that is in one of the open files, or of the further ones. The file becomes one of the former.
func (c *Checkpoint) find(name string, further *Checkpoint) (*File, Tensor, bool) {
	var found []*File
	for _, f := range c.files {
		if _, ok := f.Lookup(name); ok {
			found = append(found, f)
		}
	}
	if s, ok := further.Lookup(name); ok && len(found) == 0 {
		found = append(found, s.File)
		c.files = append(c.files, s.File)
		further.files = slices.DeleteFunc(further.files, func(f *File) bool { return f == s.File })
		c.unlisted = slices.DeleteFunc(c.unlisted, func(name string) bool { return name == s.File.name })
		slices.SortFunc(c.files, func(a, b *File) int { return cmp.Compare(a.name, b.name) })
	}
	if len(found) != 1 { // of several, nothing says which
		return nil, Tensor{}, false
	}
	t, _ := found[0].Lookup(name)
	return found[0], t, true
}

// location says where a tensor is that its shard lacks and that cannot be taken, for a message.
func (c *Checkpoint) location(name string) string {
	if c.has(name) {
		return "several others contain it"
	}
	return "no file contains it"
}

// unlistedHint names files that the index does not list, for a message.
func (c *Checkpoint) unlistedHint() string {
	if len(c.unlisted) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s does not list %s)", indexName, c.unlisted[0])
}

// openOther opens other files of the folder in the place of those that the index lists, some of which do not exist, as
// missing says. They must be a complete set, and have all tensors that the index lists; if no listed file exists, the
// index may be of other tensors. some reports whether one exists.
func (c *Checkpoint) openOther(
	folder Folder, entries []fs.DirEntry, weights []placed, some bool, missing error,
) error {
	for _, names := range otherSets(c.unlisted, WeightFiles(folder, entries), some) {
		other := new(Checkpoint)
		err := other.openAll(folder, names)
		if err == nil && (!some || other.hasAll(weights)) {
			other.unlisted = slices.DeleteFunc(slices.Clone(c.unlisted), func(name string) bool {
				return slices.Contains(names, name)
			})
			other.stale = missing
			other.notes = []string{fmt.Sprintf("%s is stale: it lists files that do not exist; "+
				"read instead: %s", indexName, shortList(names))}
			*c = *other
			return nil
		}
		_ = other.Close()
		if err != nil && !some {
			return err
		}
	}
	return missing
}

// otherSets returns the sets of files that may be the model: what would be it without the index and without what that
// lists; and if there are listed files, complete sets among all, and all files.
func otherSets(unlisted, all []string, some bool) [][]string {
	var sets [][]string
	if len(unlisted) > 0 {
		if names, err := choose(unlisted); err == nil {
			sets = append(sets, names)
		}
	}
	if !some {
		return sets
	}
	groups := map[string][]string{}
	for _, name := range all {
		key := name
		if m := shardPattern.FindStringSubmatch(name); m != nil {
			key = strings.Join([]string{m[1], m[3], m[4]}, "\x00")
		}
		groups[key] = append(groups[key], name)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if checkShards(groups[key]) == nil {
			sets = append(sets, groups[key])
		}
	}
	return append(sets, all)
}

func (c *Checkpoint) hasAll(weights []placed) bool {
	for _, w := range weights {
		if _, ok := c.Lookup(w.tensor); !ok {
			return false
		}
	}
	return true
}

// shortList lists the first of many names.
func shortList(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Stale returns the error about a listed file that does not exist, if other files were opened in its place.
func (c *Checkpoint) Stale() error { return c.stale }

// Notes lists where the index is not true of the files.
func (c *Checkpoint) Notes() []string { return c.notes }

// Unlisted returns the names of the folder's files of weights that the index does not list. They are not open.
func (c *Checkpoint) Unlisted() []string { return c.unlisted }

// Further opens the files that the index does not list. Those that cannot be opened, and those that have a tensor that
// another file has, are left out: they are another copy of the model. The result may have no files.
func (c *Checkpoint) Further(folder Folder) *Checkpoint {
	further := new(Checkpoint)
	for _, name := range c.unlisted {
		f, err := OpenIn(folder, name)
		if err != nil {
			continue
		}
		if slices.ContainsFunc(f.Header().Tensors, func(t Tensor) bool { return c.has(t.Name) || further.has(t.Name) }) {
			_ = f.Close()
			continue
		}
		further.files = append(further.files, f)
		for _, t := range f.Header().Tensors {
			further.tensors = append(further.tensors, Source{t, f})
		}
	}
	slices.SortStableFunc(further.tensors, bySourceName)
	return further
}

// has reports whether an open file has a tensor.
func (c *Checkpoint) has(name string) bool {
	return slices.ContainsFunc(c.files, func(f *File) bool {
		_, ok := f.Lookup(name)
		return ok
	})
}

// Adopt makes tensors part of the model that the index does not list: tensors of Unindexed, or of further, whose files
// c owns from then on.
func (c *Checkpoint) Adopt(list []Source, further *Checkpoint) {
	if further != nil {
		c.files = append(c.files, further.files...)
		c.unindexed = append(c.unindexed, further.tensors...)
		slices.SortFunc(c.files, func(a, b *File) int { return cmp.Compare(a.name, b.name) })
	}
	type place struct {
		file *File
		name string
	}
	adopted, counts := map[place]bool{}, map[string]int{}
	for _, s := range list {
		adopted[place{s.File, s.Name}] = true
		counts[s.File.name]++
		c.tensors = append(c.tensors, s)
	}
	c.unindexed = slices.DeleteFunc(c.unindexed, func(s Source) bool { return adopted[place{s.File, s.Name}] })
	slices.SortStableFunc(c.tensors, bySourceName)
	slices.SortStableFunc(c.unindexed, bySourceName)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c.notes = append(c.notes, fmt.Sprintf("%s does not list %s of %s that the model has; they are read",
			indexName, tensors(counts[name]), name))
	}
}

// tensors returns a number of tensors in words.
func tensors(n int) string {
	if n == 1 {
		return "1 tensor"
	}
	return fmt.Sprintf("%d tensors", n)
}
