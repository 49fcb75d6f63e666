package sources

// kinds are asked in this order; each sees what those before it left. The last one takes whatever is of an 8 bit float type.
var kinds = []Kind{
	{"mlx", findMLX},
	{"gptq", findGPTQ},
	{"awq", findAWQ},
	{"compressed-tensors", findPacked},
	{"fp4", findFP4},
	{"fp8", findFP8},
}
