"""Names of status codes, as both vendors call them."""

from __future__ import annotations

from typing import Final

_CODES: Final = {
    0: ("SUCCESS", "Success", "no error"),
    1: ("ERROR_INVALID_VALUE", "ErrorInvalidValue", "invalid argument"),
    2: ("ERROR_OUT_OF_MEMORY", "ErrorOutOfMemory", "out of memory"),
    3: ("ERROR_NOT_INITIALIZED", "ErrorNotInitialized", "initialization error"),
    4: ("ERROR_DEINITIALIZED", "ErrorDeinitialized", "driver shutting down"),
    100: ("ERROR_NO_DEVICE", "ErrorNoDevice", "no device is detected"),
    101: ("ERROR_INVALID_DEVICE", "ErrorInvalidDevice", "invalid device ordinal"),
    201: ("ERROR_INVALID_CONTEXT", "ErrorInvalidContext", "invalid device context"),
    205: ("ERROR_MAP_FAILED", "ErrorMapFailed", "mapping failed"),
    206: ("ERROR_UNMAP_FAILED", "ErrorUnmapFailed", "unmapping failed"),
    208: ("ERROR_ALREADY_MAPPED", "ErrorAlreadyMapped", "already mapped"),
    211: ("ERROR_NOT_MAPPED", "ErrorNotMapped", "not mapped"),
    400: ("ERROR_INVALID_HANDLE", "ErrorInvalidHandle", "invalid resource handle"),
    401: ("ERROR_ILLEGAL_STATE", "ErrorIllegalState", "illegal state"),
    500: ("ERROR_NOT_FOUND", "ErrorNotFound", "named symbol not found"),
    600: ("ERROR_NOT_READY", "ErrorNotReady", "device not ready"),
    700: ("ERROR_ILLEGAL_ADDRESS", "ErrorIllegalAddress", "an illegal memory access was encountered"),
    704: ("ERROR_PEER_ACCESS_ALREADY_ENABLED", "ErrorPeerAccessAlreadyEnabled", "peer access is enabled already"),
    705: ("ERROR_PEER_ACCESS_NOT_ENABLED", "ErrorPeerAccessNotEnabled", "peer access is not enabled"),
    712: ("ERROR_HOST_MEMORY_ALREADY_REGISTERED", "ErrorHostMemoryAlreadyRegistered", "registered already"),
    713: ("ERROR_HOST_MEMORY_NOT_REGISTERED", "ErrorHostMemoryNotRegistered", "not registered"),
    719: ("ERROR_LAUNCH_FAILED", "ErrorLaunchFailure", "unspecified launch failure"),
    800: ("ERROR_NOT_PERMITTED", "ErrorUnknown", "operation not permitted"),
    801: ("ERROR_NOT_SUPPORTED", "ErrorNotSupported", "operation not supported"),
    900: ("ERROR_STREAM_CAPTURE_UNSUPPORTED", "ErrorStreamCaptureUnsupported", "not permitted during capture"),
    901: ("ERROR_STREAM_CAPTURE_INVALIDATED", "ErrorStreamCaptureInvalidated", "the capture was spoiled"),
    999: ("ERROR_UNKNOWN", "ErrorUnknown", "unknown error"),
}

NOT_FOUND_TEXT: Final = "unknown error code"

PEER_ENABLED: Final = 704
PEER_NOT_ENABLED: Final = 705
ALREADY_REGISTERED: Final = 712
NOT_REGISTERED: Final = 713


def code_name(vendor: str, code: int) -> str:
    """What ``vendor`` calls ``code``; empty where it is none of those that are answered here."""
    names = _CODES.get(code)
    if names is None:
        return ""
    return f"CUDA_{names[0]}" if vendor == "cuda" else f"hip{names[1]}"


def code_text(code: int) -> str:
    """A few words on ``code``; empty where it is none of those that are answered here."""
    return _CODES[code][2] if code in _CODES else ""
