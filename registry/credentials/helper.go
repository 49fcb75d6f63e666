package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	helper "github.com/docker/docker-credential-helpers/client"
	helpers "github.com/docker/docker-credential-helpers/credentials"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/internal/child"
	"github.com/ingotml/ingot/registry/redact"
)

// helperPrefix begins the names of credential helper programs. tokenUser is the user name for which they store identity
// tokens.
const (
	helperPrefix = "docker-credential-"
	tokenUser    = "<token>"
)

// askHelper asks a credential helper for a host's credentials. It returns none if the helper has none.
func askHelper(ctx context.Context, name, key string) (authn.AuthConfig, error) {
	program, err := helperProgram(ctx, name)
	if err != nil {
		return authn.AuthConfig{}, err
	}
	run := program(helpers.ActionGet)
	run.Input(strings.NewReader(key))
	out, err := run.Output()
	if helpers.IsErrCredentialsNotFoundMessage(string(out)) {
		return authn.AuthConfig{}, nil
	}
	if err != nil {
		return authn.AuthConfig{}, helperError(name, err, out)
	}
	var kept helpers.Credentials
	if json.Unmarshal(out, &kept) != nil {
		return authn.AuthConfig{}, fmt.Errorf("%s%s prints no credentials in JSON", helperPrefix, name)
	}
	switch {
	case kept.Username == "" || kept.Secret == "":
		return authn.AuthConfig{}, nil
	case kept.Username == tokenUser:
		return authn.AuthConfig{IdentityToken: kept.Secret}, nil
	}
	return authn.AuthConfig{Username: kept.Username, Password: kept.Secret}, nil
}

// helperError returns the error of a helper that failed and wrote out.
func helperError(name string, err error, out []byte) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("the credential helper %s%s is not installed", helperPrefix, name)
	}
	said := redact.Clip(string(bytes.TrimSpace(out)))
	if said == "" || strings.Contains(said, "{") { // it may hold a secret
		said = err.Error()
	}
	return fmt.Errorf("the credential helper %s%s failed: %s", helperPrefix, name, said)
}

// helperProgram returns a function that runs a credential helper. The helper's messages go to standard error, and it
// may prompt on the terminal.
func helperProgram(ctx context.Context, name string) (helper.ProgramFunc, error) {
	if strings.ContainsAny(name, `/\`) {
		return nil, fmt.Errorf("credential helper %q: the name contains a path; docker's config.json needs NAME "+
			"for a program %sNAME on the PATH",
			redact.Clip(name), helperPrefix)
	}
	return func(args ...string) helper.Program {
		c := child.Command(ctx, nil, helperPrefix+name, args...)
		c.Stderr = os.Stderr
		return helperRun{c}
	}, nil
}

// helperRun implements helper.Program.
type helperRun struct{ *child.Cmd }

func (h helperRun) Input(in io.Reader) { h.Stdin = in }
