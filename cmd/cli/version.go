package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/ingotml/ingot/mlx/engine"
)

// Version is the release. Release builds set it with the linker.
var Version = "dev"

// PrintVersion prints the versions of the program and its engine.
func (a *App) PrintVersion() error {
	v := CurrentVersion()
	_, err := fmt.Fprintf(a.Out, "ingot %s (commit %s, %s, %s), MLX %s\n", v.Version, v.Commit, v.Go, v.Platform, v.MLX)
	return err
}

type versionJSON struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	MLX      string `json:"mlx"` // the engine version that this program needs
}

// CurrentVersion describes this program.
func CurrentVersion() versionJSON {
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
