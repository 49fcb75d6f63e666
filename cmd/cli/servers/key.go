package servers

import (
	"fmt"
	"os"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/server/keys"
	"github.com/spf13/cobra"
)

// EnvAPIKey holds the API key of a server, for the server and for its clients.
const EnvAPIKey = "INGOT_API_KEY"

// KeyFlag chooses a server's API key: the first one of a file, or else that of the environment.
type KeyFlag struct{ File string }

// Add adds the flag.
func (k *KeyFlag) Add(c *cobra.Command, whose string) {
	c.Flags().StringVar(&k.File, "api-key-file", "", "`file` with the "+whose+" (default $"+EnvAPIKey+")")
}

// Read returns the key, or "" if there is none.
func (k KeyFlag) Read(a *cli.App) (string, error) {
	if k.File == "" {
		return os.Getenv(EnvAPIKey), nil
	}
	key, mode, err := keys.First(k.File)
	if err != nil {
		return "", fmt.Errorf("--api-key-file: %w", err)
	}
	cli.NoteReadable(a, k.File, mode)
	return key, nil
}
