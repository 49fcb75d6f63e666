package cmd

import (
	"github.com/ingotml/ingot/runtime"
	"github.com/spf13/cobra"
)

// kvFlag is the number format of KV caches, for commands that run a model.
type kvFlag string

func (o *kvFlag) add(c *cobra.Command) {
	c.Flags().StringVar((*string)(o), "kv-type", "auto", "KV cache `type`: auto (as computed), q8 or q4")
}

func (o kvFlag) value() (runtime.KVType, error) {
	t, err := runtime.ParseKVType(string(o))
	if err != nil {
		return "", usagef("--kv-type: %v", err)
	}
	return t, nil
}
