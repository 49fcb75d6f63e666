package engine

import (
	"io/fs"

	"github.com/ingotml/ingot/mlx/bridge"
)

func bridgeSources() (fs.FS, int64) { return bridge.Sources(), int64(bridge.ABI) }
