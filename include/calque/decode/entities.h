// Character references of HTML and XML: &eacute; &#233; &amp;
#pragma once

#include <string>

namespace calque {

// Named and numeric character references; unknown ones stay as they are.
std::string decode_entities(const std::string& text);
std::string encode_entities(const std::string& text);  // & < >

}  // namespace calque
