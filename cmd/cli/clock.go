package cli

import (
	"os"
	"strconv"
	"time"
)

// Clock returns the time for templates: from the flag, or else SOURCE_DATE_EPOCH, or else nil for the current time.
func Clock(flag string) (func() time.Time, error) {
	var t time.Time
	if flag != "" {
		var err error
		if t, err = time.Parse("2006-01-02T15:04:05", flag); err != nil {
			return nil, Usagef("--now %q is not a time such as 2026-01-02T03:04:05", flag)
		}
	} else if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		s, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return nil, Usagef("SOURCE_DATE_EPOCH %q is not a number of seconds", epoch)
		}
		t = time.Unix(s, 0).UTC()
	} else {
		return nil, nil
	}
	return func() time.Time { return t }, nil
}
