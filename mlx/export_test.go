package mlx

// What the tests of package mlx_test need of the inside.

var CgroupLimit = cgroupLimit
