package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/safetensors"
)

// Extension is the extension of GGUF files, in lower case.
const Extension = ".gguf"

// part matches the names of the files of a split set, which are numbered from 1.
var part = regexp.MustCompile(`^(.+)-(\d{5})-of-(\d{5})(\.[^./]*)?$`)

// HasExtension reports whether a name is one that GGUF files have, whatever the file is.
func HasExtension(name string) bool { return strings.EqualFold(filepath.Ext(name), Extension) }

// Set returns the names of all files of the model that a file belongs to: the file alone, or a split set in order.
func Set(name string) ([]string, error) {
	m := part.FindStringSubmatch(name)
	if m == nil {
		return []string{name}, nil
	}
	at, _ := strconv.Atoi(m[2])
	count, _ := strconv.Atoi(m[3])
	if at < 1 || at > count {
		return nil, fmt.Errorf("%s: part %d of %d does not exist", name, at, count)
	}
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%05d-of-%s%s", m[1], i+1, m[3], m[4])
	}
	return names, nil
}

// ErrNoFile reports that none of the names is a GGUF file of the wanted name or type.
var ErrNoFile = errors.New("no such GGUF file")

// Named returns the names that files of models have, in a folder whose files are not read for that: not those of
// projectors for pictures (mmproj).
func Named(names []string) []string {
	var out []string
	for _, name := range names {
		base := strings.ToLower(path.Base(name))
		if HasExtension(name) && !strings.HasPrefix(base, ".") && !strings.HasPrefix(base, "mmproj") {
			out = append(out, name)
		}
	}
	return out
}

// Sets returns the files of each model among the names of GGUF files, which may have folders.
func Sets(names []string) ([][]string, error) {
	var sets [][]string
	for _, name := range names {
		set, err := Set(name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(sets, func(s []string) bool { return s[0] == set[0] }) {
			sets = append(sets, set)
		}
	}
	return sets, nil
}

// Choose returns the files of one model among those of several. wanted is a file's name, or the type at the end of one,
// such as Q4_K_M; with "", there must be only one model. The result is nil if nothing is wanted and there is no model.
func Choose(sets [][]string, wanted string) ([]string, error) {
	if wanted != "" {
		return find(sets, wanted)
	}
	switch len(sets) {
	case 0:
		return nil, nil
	case 1:
		return sets[0], nil
	}
	return nil, fmt.Errorf("%w: it has several GGUF models: %s", safetensors.ErrAmbiguous, list(sets))
}

// find returns the set that has a name, or else the one whose name ends with a type. Of Model-Q4_K_M and
// Model-UD-Q4_K_M, Q4_K_M is the former.
func find(sets [][]string, wanted string) ([]string, error) {
	if len(sets) == 0 {
		return nil, fmt.Errorf("%w: there are no GGUF files; leave out :%s for a safetensors checkpoint",
			ErrNoFile, clip.Text(wanted, 80))
	}
	var found [][]string
	for _, set := range sets {
		if slices.Contains(set, wanted) || slices.Contains(set, wanted+Extension) {
			return set, nil
		}
		if hasType(set[0], wanted) {
			found = append(found, set)
		}
	}
	slices.SortStableFunc(found, func(a, b []string) int { return len(a[0]) - len(b[0]) })
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("%w: none is named %s or has that type; there are %s", ErrNoFile, clip.Text(wanted, 80),
			list(sets))
	case len(found) > 1 && len(found[0][0]) == len(found[1][0]):
		return nil, fmt.Errorf("%w: several files have the type %s: %s", safetensors.ErrAmbiguous, clip.Text(wanted, 80),
			list(found))
	}
	return found[0], nil
}

// hasType reports whether a file's name ends with a type.
func hasType(name, wanted string) bool {
	stem := strings.TrimSuffix(name, path.Ext(name))
	if m := part.FindStringSubmatch(name); m != nil {
		stem = m[1]
	}
	before, ok := strings.CutSuffix(strings.ToUpper(stem), strings.ToUpper(wanted))
	return ok && (before == "" || strings.ContainsAny(before[len(before)-1:], "-._/"))
}

// list lists the first files of sets, for a message.
func list(sets [][]string) string {
	const most = 8
	var names []string
	for i, set := range sets {
		if i == most {
			return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(sets)-most)
		}
		names = append(names, clip.Text(set[0], 120))
	}
	return strings.Join(names, ", ")
}

// file is an open GGUF file.
type file struct {
	*safetensors.File
	header *gguf.Header
}

// openFile opens a file. Tensors of types with blocks are described as bytes.
func openFile(folder safetensors.Folder, name string) (file, error) {
	var out file
	var err error
	out.File, err = safetensors.OpenAs(folder, name, func(r io.ReaderAt, size int64) (*safetensors.Header, error) {
		var err error
		if out.header, err = gguf.Read(r, size); err != nil {
			return nil, err
		}
		h := &safetensors.Header{DataOffset: out.header.Data, Size: size}
		for _, t := range out.header.Tensors {
			begin := t.Offset - out.header.Data
			st := safetensors.Tensor{
				Name: t.Name, DType: safetensors.U8, Shape: []int64{t.Size}, Begin: begin, End: begin + t.Size,
			}
			if d := t.Type.DType(); d != "" {
				st.DType, st.Shape = safetensors.DType(d), t.Shape
			}
			h.Tensors = append(h.Tensors, st)
		}
		return h, nil
	})
	return out, err
}

// readMetadata reads the metadata of a file.
func readMetadata(folder safetensors.Folder, name string) (m gguf.Metadata, err error) {
	f, err := safetensors.OpenAs(folder, name, func(r io.ReaderAt, size int64) (*safetensors.Header, error) {
		m, err = gguf.ReadMetadata(r, size)
		return &safetensors.Header{Size: size}, err
	})
	if err != nil {
		return m, err
	}
	return m, f.Close()
}

// tensor is a tensor of the set.
type tensor struct {
	gguf.Tensor
	source safetensors.Source
}

// set is the files of a model, open.
type set struct {
	files   []file
	tensors map[string]tensor
	names   []string // in the order of the files
}

func openSet(folder safetensors.Folder, names []string) (*set, error) {
	s := &set{tensors: map[string]tensor{}}
	for i, name := range names {
		f, err := openFile(folder, name)
		if err != nil {
			_ = s.close()
			if len(names) > 1 {
				return nil, fmt.Errorf("%w (the model has %d files)", err, len(names))
			}
			return nil, err
		}
		s.files = append(s.files, f)
		if err := s.add(f, i, len(names)); err != nil {
			_ = s.close()
			return nil, fmt.Errorf("%s: %w", f.Path(), err)
		}
	}
	return s, nil
}

// add adds the tensors of file i of n, and checks that it is this file.
func (s *set) add(f file, i, n int) error {
	for _, k := range []struct {
		key  string
		want int
	}{{"split.no", i}, {"split.count", n}} {
		v, ok := f.header.Metadata.Lookup(k.key)
		if !ok {
			continue
		}
		if got, ok := v.Int(0); !ok || got != int64(k.want) && !(k.key == "split.count" && got == 0) {
			return fmt.Errorf("%w: %s is %d, but by its name it is part %d of %d; rename or download it again",
				safetensors.ErrIncomplete, k.key, got, i+1, n)
		}
	}
	for j, t := range f.header.Tensors {
		if other, twice := s.tensors[t.Name]; twice {
			return fmt.Errorf("tensor %s: %w: it is also in %s", t.Name, safetensors.ErrDuplicate,
				filepath.Base(other.source.File.Path()))
		}
		s.tensors[t.Name] = tensor{t, safetensors.Source{Tensor: f.Header().Tensors[j], File: f.File}}
		s.names = append(s.names, t.Name)
	}
	return nil
}

func (s *set) close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// checkCount checks that all tensors of a split set are there.
func (s *set) checkCount() error {
	v, ok := s.files[0].header.Metadata.Lookup("split.tensors.count")
	if !ok {
		return nil
	}
	if want, ok := v.Int(0); !ok || want != int64(len(s.names)) {
		return fmt.Errorf("%w: split.tensors.count is %d, but the files have %d tensors; download them again",
			safetensors.ErrIncomplete, want, len(s.names))
	}
	return nil
}

// path returns the path of the file with the metadata.
func (s *set) path() string { return s.files[0].Path() }

// plainType reports whether a type has no blocks.
func plainType(t ggml.Type) bool { return t.DType() != "" }
