package cmd

import (
	"fmt"
	"os"

	"github.com/ingotml/ingot/server/keys"
	"github.com/spf13/cobra"
)

// envAPIKey holds the API key of a server, for the server and for its clients.
const envAPIKey = "INGOT_API_KEY"

// keyFlag chooses a server's API key: the first one of a file, or else that of the environment.
type keyFlag struct{ file string }

func (k *keyFlag) add(c *cobra.Command, whose string) {
	c.Flags().StringVar(&k.file, "api-key-file", "", "`file` with the "+whose+" (default $"+envAPIKey+")")
}

// read returns the key, or "" if there is none.
func (k keyFlag) read(a *app) (string, error) {
	if k.file == "" {
		return os.Getenv(envAPIKey), nil
	}
	key, mode, err := keys.First(k.file)
	if err != nil {
		return "", fmt.Errorf("--api-key-file: %w", err)
	}
	noteReadable(a, k.file, mode)
	return key, nil
}
