package ingest_test

import (
	"testing"

	"github.com/ingotml/ingot/manifest/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
