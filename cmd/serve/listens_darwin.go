package serve

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/internal/child"
)

// portOwner names the process that listens on a port, if this user may see it.
func portOwner(port int) string {
	lsof := child.Command(context.Background(), child.Environment(child.System), "lsof",
		"-nP", fmt.Sprintf("-iTCP:%d", port), "-sTCP:LISTEN", "-Fpc")
	out, err := lsof.Output()
	if err != nil {
		return ""
	}
	return lsofOwner(string(out))
}
