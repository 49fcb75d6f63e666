package registry

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	helper "github.com/docker/docker-credential-helpers/client"
	"github.com/ingotml/ingot/child"
)

// helperPrefix begins the names of credential helpers' programs. tokenUser is the user under which they keep identity
// tokens.
const (
	helperPrefix = "docker-credential-"
	tokenUser    = "<token>"
)

// helperProgram is how a credential helper is run. Its messages go to standard error, and it may ask the user on the
// terminal.
func helperProgram(name string) (helper.ProgramFunc, error) {
	if strings.ContainsAny(name, `/\`) {
		return nil, fmt.Errorf("credential helper %q: its name holds a path; docker's config.json takes NAME of %sNAME on the PATH",
			clip(name), helperPrefix)
	}
	return func(args ...string) helper.Program {
		c := child.Command(context.Background(), nil, helperPrefix+name, args...)
		c.Stderr = os.Stderr
		return helperRun{c}
	}, nil
}

// helperRun implements helper.Program.
type helperRun struct{ *child.Cmd }

func (h helperRun) Input(in io.Reader) { h.Stdin = in }
