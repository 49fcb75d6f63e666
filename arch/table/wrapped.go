package table

import (
	"strings"
)

// innerWrappers are what torch.compile, FSDP and activation checkpointing put into the names of a wrapped module's
// tensors, wherever the module is. outerWrappers are what DataParallel and PEFT put before all names.
var (
	innerWrappers = []string{"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module."}
	outerWrappers = []string{"module.", "base_model.model."}
)

// unwrapped returns a tensor's name without the parts that training programs put into it.
func unwrapped(name string) string {
	for _, w := range innerWrappers {
		name = strings.ReplaceAll(strings.TrimPrefix(name, w), "."+w, ".")
	}
	for again := true; again; {
		again = false
		for _, w := range outerWrappers {
			if rest, ok := strings.CutPrefix(name, w); ok {
				name, again = rest, true
			}
		}
	}
	return name
}
