package server_test

import (
	"os"
	"testing"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/all"
	"github.com/ingotml/ingot/server/servertest"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

// fixture is a server for tests.
type fixture struct{ *servertest.Fixture }

func serve(t testing.TB, change func(*server.Options)) *fixture {
	t.Helper()
	return &fixture{servertest.Serve(t, change, all.APIs...)}
}
