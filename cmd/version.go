package cmd

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/ingotml/ingot/mlx/engine"
	"github.com/spf13/cobra"
)

// Version is the release. Release builds set it with the linker.
var Version = "dev"

func (a *app) versionCmd() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of ingot and its engine",
		Args:  between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.printJSON(version())
			}
			return a.printVersion()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printVersion() error {
	v := version()
	_, err := fmt.Fprintf(a.out, "ingot %s (commit %s, %s, %s), MLX %s\n", v.Version, v.Commit, v.Go, v.Platform, v.MLX)
	return err
}

type versionJSON struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	MLX      string `json:"mlx"` // the engine version that this program needs
}

func version() versionJSON {
	v := versionJSON{Version, "unknown", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, engine.Version}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return v
}
