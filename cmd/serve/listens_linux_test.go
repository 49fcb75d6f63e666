package serve

import (
	"maps"
	"testing"
)

func TestListeners(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2CAA 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1
   1: 0100007F:2CAA 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 777 1
   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 999 1
   3: 00000000000000000000000001000000:2CAA 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 54321 1
   4: short
`
	if got := listeners(table, 11434); !maps.Equal(got, map[string]bool{"12345": true, "54321": true}) {
		t.Errorf("inodes %v", got)
	}
}
