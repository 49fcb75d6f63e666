//go:build !amd64

package weighted

const hasAVX2 = false

func sumsAVX2(*[3]lanes, *float64, *float64, int, float64, float64, float64) {}

func distanceAVX2(*lanes, *float64, *float64, int, float64, float64, float64, float64) {}

func moveAVX2(*float64, int, *float64, int, *float64, int) {}
