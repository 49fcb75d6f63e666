package cmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/servers"
	"github.com/ingotml/ingot/server/address"
)

// TestWhoMayListen checks that an address that other machines can reach requires a key or an explicit flag.
func TestWhoMayListen(t *testing.T) {
	t.Setenv("INGOT_HOME", t.TempDir())
	t.Setenv("INGOT_ENGINE", t.TempDir()) // has no engine, which ends a server that would start
	t.Setenv(servers.EnvAPIKey, "")
	for args, refused := range map[string]bool{
		"":                                   false,
		"--host 127.0.0.1:0":                 false,
		"--host localhost:0":                 false,
		"--host [::1]:0":                     false,
		"--host 0.0.0.0:0":                   true,
		"--host [::]:0":                      true,
		"--host some.example:0":              true,
		"--host 0.0.0.0:0 --api-key k":       false,
		"--host 0.0.0.0:0 --insecure-listen": false,
	} {
		if args == "" {
			t.Setenv(address.Env, "127.0.0.1:0")
		}
		var out, errs bytes.Buffer
		code := Main(append([]string{"serve"}, strings.Fields(args)...), strings.NewReader(""), &out, &errs)
		got := code == cli.ExitUsage && strings.Contains(errs.String(), "other machines can reach")
		if got != refused || !refused && code != cli.ExitFailed {
			t.Errorf("serve %s: exit code %d, %s", args, code, errs.String())
		}
	}
}
