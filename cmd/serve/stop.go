package serve

import (
	"net/http"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/servers"
	"github.com/ingotml/ingot/manifest"
	"github.com/spf13/cobra"
)

func stopCommand(a *cli.App) *cobra.Command {
	var flags servers.Flags
	c := &cobra.Command{
		Use:   "stop NAME",
		Short: "Unload a model from the server",
		Long:  `Unload a model from the server after its running requests finish. This frees all of its memory.`,
		Args:  cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			name, err := manifest.ParseName(args[0])
			if err != nil {
				return err
			}
			var response struct {
				Reason string `json:"done_reason"`
			}
			body := map[string]any{"model": name.String(), "keep_alive": 0}
			client, err := servers.New(a, flags)
			if err != nil {
				return err
			}
			return client.Get(c.Context(), http.MethodPost, "/api/generate", body, &response)
		},
	}
	flags.Add(c)
	return c
}
