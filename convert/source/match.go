package source

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
)

// infos describes the tensors to a tensor table.
func (src *Source) infos() []arch.TensorInfo { return infosOf(src.tensors) }

func infosOf(list []Tensor) []arch.TensorInfo {
	have := make([]arch.TensorInfo, 0, len(list))
	for _, w := range list {
		info := arch.TensorInfo{Name: w.Name, DType: string(w.DType), Shape: w.Shape, File: w.Path}
		if w.Coded != nil {
			info.Note = w.Coded.Format
		}
		have = append(have, info)
	}
	return have
}

// Match matches the checkpoint's tensors against the model's tensor table.
func (src *Source) Match() (arch.Match, error) {
	match, err := src.Model.Table().Check(src.infos())
	var wrong *arch.TableError
	if errors.As(err, &wrong) && src.restore(wrong) {
		match, err = src.Model.Table().Check(src.infos())
	}
	if !errors.As(err, &wrong) {
		return match, err
	}
	for i, p := range wrong.Problems {
		if p.Kind == arch.Absent {
			wrong.Problems[i] = src.whereAbsent(p)
		}
	}
	return match, wrong
}

// restore turns ignored tensors that the table misses, and that only data could tell from needless ones, into tensors.
func (src *Source) restore(wrong *arch.TableError) (any bool) {
	for _, p := range wrong.Problems {
		i := slices.Index(src.doubtful, p.Tensor)
		if p.Kind != arch.Absent || i < 0 {
			continue
		}
		src.doubtful = slices.Delete(src.doubtful, i, i+1)
		at := slices.IndexFunc(src.ignored, func(t Ignored) bool { return t.Name == p.Tensor })
		src.tensors = append(src.tensors, src.ignored[at].Tensor)
		src.ignored, any = slices.Delete(src.ignored, at, at+1), true
	}
	slices.SortFunc(src.tensors, func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
	return any
}

// whereAbsent adds the expected file of an absent tensor to the problem.
func (src *Source) whereAbsent(p arch.Problem) arch.Problem {
	p.File = src.From
	if src.checkpoint != nil {
		if files := src.checkpoint.Files(); len(files) == 1 {
			p.File = files[0].Path()
		}
	}
	if src.checkpoint != nil && len(src.checkpoint.Unlisted()) > 0 {
		p.Detail += fmt.Sprintf("; %s does not list %s", IndexName, src.checkpoint.Unlisted()[0])
	}
	for _, w := range src.unlisted {
		if w.Name == p.Tensor {
			p.File = src.folder.Path(IndexName)
			p.Detail = "it is in " + w.File + " but not in the index"
			return p
		}
	}
	return p
}
