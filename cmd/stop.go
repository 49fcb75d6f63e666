package cmd

import (
	"net/http"

	"github.com/ingotml/ingot/manifest"
	"github.com/spf13/cobra"
)

func (a *app) stopCmd() *cobra.Command {
	var flags serverFlags
	c := &cobra.Command{
		Use:   "stop NAME",
		Short: "Unload a model from the server",
		Long:  `Unload a model from the server after its running requests finish. This frees all of its memory.`,
		Args:  between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			name, err := manifest.ParseName(args[0])
			if err != nil {
				return err
			}
			var response struct {
				Reason string `json:"done_reason"`
			}
			body := map[string]any{"model": name.String(), "keep_alive": 0}
			client, err := a.newClient(flags)
			if err != nil {
				return err
			}
			return client.get(c.Context(), http.MethodPost, "/api/generate", body, &response)
		},
	}
	flags.add(c)
	return c
}
