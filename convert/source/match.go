package source

import (
	"errors"
	"fmt"

	"github.com/ingotml/ingot/arch/table"
)

// infos describes the tensors to a tensor table.
func (src *Source) infos() []table.TensorInfo { return infosOf(src.tensors) }

func infosOf(list []Tensor) []table.TensorInfo {
	have := make([]table.TensorInfo, 0, len(list))
	for _, w := range list {
		info := table.TensorInfo{Name: w.Name, DType: string(w.DType), Shape: w.Shape, File: w.Path}
		if w.Coded != nil {
			info.Note = w.Coded.Format
		}
		have = append(have, info)
	}
	return have
}

// Match matches the checkpoint's tensors against the model's tensor table.
func (src *Source) Match() (table.Match, error) {
	match, err := src.Model.Table().Check(src.infos())
	var wrong *table.TableError
	if !errors.As(err, &wrong) {
		return match, err
	}
	for i, p := range wrong.Problems {
		if p.Kind == table.Absent {
			wrong.Problems[i] = src.whereAbsent(p)
		}
	}
	return match, wrong
}

// whereAbsent adds the expected file of an absent tensor to the problem.
func (src *Source) whereAbsent(p table.Problem) table.Problem {
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
