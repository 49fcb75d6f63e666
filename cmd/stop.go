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
		Short: "Have the server unload a model",
		Long:  `Have the server unload a model once the requests that it has have ended. All of its memory is free then.`,
		Args:  between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			name, err := manifest.ParseName(args[0])
			if err != nil {
				return err
			}
			var answer struct {
				Reason string `json:"done_reason"`
			}
			body := map[string]any{"model": name.String(), "keep_alive": 0}
			client, err := a.newClient(flags)
			if err != nil {
				return err
			}
			return client.get(c.Context(), http.MethodPost, "/api/generate", body, &answer)
		},
	}
	flags.add(c)
	return c
}
