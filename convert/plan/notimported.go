package plan

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/convert/source"
)

// NotImported is a part of a checkpoint that the image lacks, such as a vision tower.
type NotImported struct {
	Part    string `json:"part"`              // as the tensors' names have it, or the name of a file
	Tensors int    `json:"tensors,omitempty"` // 0: it is a file
	Bytes   int64  `json:"bytes"`             // in the checkpoint
	Why     string `json:"why"`
}

// String returns one line for people.
func (n NotImported) String() string {
	tensors := ""
	switch n.Tensors {
	case 0:
	case 1:
		tensors = "1 tensor, "
	default:
		tensors = fmt.Sprintf("%d tensors, ", n.Tensors)
	}
	return fmt.Sprintf("%s: %s%s: %s", n.Part, tensors, bytesText(n.Bytes), n.Why)
}

// bytesText formats a size.
func bytesText(n int64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"kB", "MB", "GB", "TB"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1000, u
	}
	if unit == "B" || v >= 9.95 {
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}

// sumDropped sums the dropped tensors of each part that is lost with them, and notes each and the files that are left
// out.
func (p *Plan) sumDropped(files []source.LeftFile) {
	for _, f := range files {
		p.NotImported = append(p.NotImported, NotImported{Part: f.Name, Bytes: f.Size, Why: f.Why})
	}
	for _, d := range p.Dropped {
		if d.Part == "" {
			continue
		}
		i := slices.IndexFunc(p.NotImported, func(n NotImported) bool { return n.Part == d.Part && n.Why == d.Reason })
		if i < 0 {
			i = len(p.NotImported)
			p.NotImported = append(p.NotImported, NotImported{Part: d.Part, Why: d.Reason})
		}
		p.NotImported[i].Tensors++
		p.NotImported[i].Bytes += d.Tensor.Size()
	}
	for _, n := range p.NotImported {
		p.Warnings = append(p.Warnings, "not imported: "+n.String())
	}
}
