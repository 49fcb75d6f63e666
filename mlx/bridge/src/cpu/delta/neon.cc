#define INGOT_ISA neon
#include "cpu/delta/kernels.h"
#include "cpu/delta/wkv.h"

namespace ingot::cpu {

extern const DeltaKernels delta_neon;
const DeltaKernels delta_neon = {{neon::delta<float>, neon::delta<f16>, neon::delta<bf16>},
                                 {neon::scan<float>, neon::scan<f16>, neon::scan<bf16>},
                                 neon::channels,
                                 {neon::conv<float>, neon::conv<f16>, neon::conv<bf16>},
                                     {neon::wkv<float>, neon::wkv<f16>, neon::wkv<bf16>}};

}  // namespace ingot::cpu
