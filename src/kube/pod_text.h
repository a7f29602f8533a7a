// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kube/fields.h"

// What is kept of the JSON of a pod that waits, to be read again when what it refers to changes.
// Anybody who may make pods may give one a megabyte of arguments, variables or annotations: what
// ReadPodClass does not look at is left out.

namespace rudderfish::kube {

// ReadPodClass makes the same of it as of the pod itself, whatever the references.
std::string WhatIsReadOfPod(const Element& pod);

}  // namespace rudderfish::kube
