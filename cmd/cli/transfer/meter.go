package transfer

import (
	"time"
)

// meter measures the current transfer rate over the last few seconds. An average over the whole run would be dominated
// by its start, which does not predict the time left.
type meter struct {
	marks []mark // oldest first, at least markEvery apart
	total int64
}

type mark struct {
	at    time.Time
	total int64
}

const (
	markEvery = 250 * time.Millisecond
	markFor   = 8 * time.Second
)

func newMeter(now time.Time) meter { return meter{marks: []mark{{now, 0}}} }

// add counts transferred bytes.
func (m *meter) add(now time.Time, bytes int64) {
	m.total += bytes
	if now.Sub(m.marks[len(m.marks)-1].at) >= markEvery {
		m.marks = append(m.marks, mark{now, m.total})
	}
}

// rate returns bytes per second, or 0 while there are too few samples.
func (m *meter) rate(now time.Time) float64 {
	for len(m.marks) > 1 && now.Sub(m.marks[1].at) >= markFor {
		m.marks = m.marks[1:]
	}
	if now.Sub(m.marks[len(m.marks)-1].at) >= markFor {
		return 0
	}
	since := min(now.Sub(m.marks[0].at), markFor) // after a stall the first mark may be older than markFor
	if since < markEvery {
		return 0
	}
	return float64(m.total-m.marks[0].total) / since.Seconds()
}
