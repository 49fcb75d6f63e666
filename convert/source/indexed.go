package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/safetensors"
)

// readIndexed reads the checkpoint's tensors. Tensors of the listed files that the index does not list are read too, as
// far as the model has them; and if that lacks tensors then, those of files that the index does not list.
func (src *Source) readIndexed(config []byte) (packed.Result, error) {
	c := src.checkpoint
	found, err := src.read(config, c.Tensors())
	if c.Stale() == nil && len(c.Unindexed()) == 0 && len(c.Unlisted()) == 0 {
		return found, err // the index says it all
	}
	problem := err
	if err == nil {
		problem = src.fits(found)
	}
	unindexed := slices.DeleteFunc(slices.Clone(c.Unindexed()), func(s safetensors.Source) bool {
		_, listed := c.Lookup(s.Name)
		return listed
	})
	wider, added, ok := src.widen(config, unindexed)
	if problem == nil {
		// Tensors that a model may lack belong to it too, such as a bias.
		if added = src.used(wider, added); !ok || len(added) == 0 {
			return found, nil
		}
		wider, added, ok = src.widen(config, added)
	}
	if ok {
		c.Adopt(added, nil)
		return wider, nil
	}
	if problem == nil {
		return found, nil
	}
	further := c.Further(src.folder)
	if wider, added, ok := src.widen(config, append(unindexed, further.Tensors()...)); ok {
		c.Adopt(added, further)
		return wider, nil
	}
	_ = further.Close()
	if stale := c.Stale(); stale != nil {
		return found, fmt.Errorf("%w (of the files that are there: %w)", stale, problem)
	}
	return found, err
}

// read reads tensors as a checkpoint of their own.
func (src *Source) read(config []byte, list []safetensors.Source) (packed.Result, error) {
	c := packed.NewCheckpoint(src.folder, config, list)
	c.HeadersOnly = src.options.HeadersOnly
	return packed.Read(c)
}

// fits returns what the tensors lack to be those of the model.
func (src *Source) fits(found packed.Result) error {
	_, err := src.Model.Table().Check(infosOf(tensorsOf(src.folder, found)))
	return err
}

// used returns those of the added tensors that the model takes.
func (src *Source) used(found packed.Result, added []safetensors.Source) []safetensors.Source {
	match, err := src.Model.Table().Check(infosOf(tensorsOf(src.folder, found)))
	if err != nil {
		return nil
	}
	taken := map[string]bool{}
	for _, m := range match.Tensors {
		for _, name := range m.Sources {
			taken[name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(added), func(s safetensors.Source) bool { return !taken[s.Name] })
}

// widen reads the listed tensors with more, of which it leaves out those that no such model has.
func (src *Source) widen(config []byte, more []safetensors.Source) (packed.Result, []safetensors.Source, bool) {
	for range 2 {
		if len(more) == 0 {
			break
		}
		list := append(slices.Clone(src.checkpoint.Tensors()), more...)
		slices.SortFunc(list, func(a, b safetensors.Source) int { return strings.Compare(a.Name, b.Name) })
		found, err := src.read(config, list)
		if err == nil {
			err = src.fits(found)
		}
		if err == nil {
			return found, more, true
		}
		var wrong *table.TableError
		if !errors.As(err, &wrong) {
			break
		}
		unknown := map[string]bool{}
		for _, p := range wrong.Problems {
			if p.Kind == table.Unknown {
				unknown[p.Tensor] = true
			}
		}
		more = slices.DeleteFunc(slices.Clone(more), func(s safetensors.Source) bool { return unknown[s.Name] })
	}
	return packed.Result{}, nil, false
}
