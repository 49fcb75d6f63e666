#define INGOT_ISA neon
#include "cpu/delta/gates.h"
#include "cpu/delta/kernels.h"
#include "cpu/delta/wkv.h"

namespace ingot::cpu {

extern const DeltaKernels delta_neon;
const DeltaKernels delta_neon = {
    .delta = {neon::delta<float>, neon::delta<f16>, neon::delta<bf16>},
    .column_delta = {neon::column_delta<float>, neon::column_delta<f16>, neon::column_delta<bf16>},
    .scan = {neon::scan<float>, neon::scan<f16>, neon::scan<bf16>},
    .channels = neon::channels,
    .softplus = neon::softplus,
    .unit_gates = {neon::unit_gates<float>, neon::unit_gates<f16>, neon::unit_gates<bf16>},
    .conv = {neon::conv<float>, neon::conv<f16>, neon::conv<bf16>},
    .wkv = {neon::wkv<float>, neon::wkv<f16>, neon::wkv<bf16>},
};

}  // namespace ingot::cpu
